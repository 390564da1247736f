"""Which frame means which phase of the host: the table, by framework.

A rule matches the last part of a qualified function name and the path of its file. Names that are
common words need their path; versions differ, so lines are never used. Sources: public stacks and
the libraries' own code, collected per phase. Several rules may match one stack: ``PRIORITY``
decides, not the order of the frames.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

PRIORITY = (
    "compile",
    "checkpoint",
    "logging",
    "grad_sync",
    "data_worker_start",
    "data_inline",
    "data_sampler",
    "data_wait",
    "h2d_copy",
    "d2h_copy",
    "sync",
    "optimizer",
    "backward",
    "forward",
    "import",
    "gc",
    "launcher",
)
"""The first of these that a stack matches is its phase; ``user`` where none does."""

PHASES = (*PRIORITY, "framework", "user")
"""All values of the label ``phase``. ``framework``: a leaf in a training framework's own loop,
most often a C call that leaves no frame; ``user``: the user's own code."""


@dataclass(frozen=True, slots=True)
class Rule:
    phase: str
    path: re.Pattern[str]
    names: frozenset[str] | None  # None: any function of these files

    def matches(self, name: str, file: str) -> bool:
        return (self.names is None or name in self.names) and self.path.search(file) is not None


def _rule(phase: str, path: str, names: str = "") -> Rule:
    return Rule(phase, re.compile(path), frozenset(names.split()) if names else None)


_LIGHTNING = r"(?:lightning|pytorch_lightning)/"

RULES: tuple[Rule, ...] = (
    # compilation and tracing; `_fn (eval_frame.py)` wraps normal execution and is left out
    _rule("compile", r"torch/_dynamo/(?!eval_frame|external_utils|decorators)", ""),
    _rule("compile", r"torch/_dynamo/eval_frame\.py$", "_compile catch_errors"),
    _rule("compile", r"torch/_inductor/(?!output_code|utils|runtime/triton_heuristics|cudagraph)"),
    _rule("compile", r"torch/_inductor/cudagraph_trees\.py$", "record_function _record"),
    _rule(
        "compile",
        r"torch/_inductor/runtime/triton_heuristics\.py$",
        "_make_launchers precompile autotune_to_one_config benchmark_all_configs"
        " _precompile_config",
    ),
    _rule("compile", r"torch/_functorch/", "aot_module_simplified aot_dispatch_autograd"),
    _rule("compile", r"torch/fx/(?:experimental|passes)/|torch/export/"),
    _rule("compile", r"triton/(?:compiler|testing|backends)"),
    _rule("compile", r"torch/utils/cpp_extension\.py$", "load _jit_compile"),
    _rule("compile", r"jax/_src/compiler\.py$"),
    _rule(
        "compile",
        r"jax/_src/(?:pjit|interpreters/(?:pxla|partial_eval|mlir))\.py$",
        "_cached_compilation _infer_params _infer_params_impl trace_to_jaxpr_dynamic"
        " lower_sharding_computation lower_jaxpr_to_module",
    ),
    # checkpoints
    _rule("checkpoint", r"torch/serialization\.py$", "save _save _legacy_save"),
    _rule("checkpoint", r"torch/distributed/checkpoint/"),
    _rule("checkpoint", r"safetensors/", "save_file save save_model"),
    _rule("checkpoint", r"orbax/"),
    _rule(
        "checkpoint",
        r"",
        "save_checkpoint _save_checkpoint dump_checkpoint _save_zero_checkpoint"
        " save_checkpoint_and_time checkpoint_and_decide_exit dcp_save save_pretrained save_state"
        " async_save",
    ),
    _rule("checkpoint", r"transformers/trainer\.py$", "save_model _save_optimizer_and_scheduler"),
    _rule("checkpoint", r"keras/.*model_checkpoint\.py$", "_save_model"),
    # logging
    _rule("logging", r"/(?:wandb|mlflow|comet_ml|neptune|clearml|aim)/"),
    _rule("logging", r"(?:tensorboard|tensorboardX)/"),
    # a progress bar's generator is also the parent of the loader's `next`: only its own work counts
    _rule(
        "logging",
        r"/tqdm/|/rich/",
        "refresh display update status_printer print_status fp_write format_meter set_postfix"
        " set_description moveto render _render get_renderables",
    ),
    _rule("logging", r"/logging/__init__\.py$"),
    _rule("logging", r"megatron/training", "training_log"),
    _rule("logging", r"mmengine/hooks/logger_hook\.py$"),
    _rule("logging", r"detectron2/engine/train_loop\.py$", "_write_metrics write_metrics"),
    _rule("logging", r"torchtitan/components/metrics\.py$", "log"),
    _rule("logging", r"", "_compute_and_log_metrics add_scalar add_histogram log_metrics"),
    # collectives and waiting for other ranks
    _rule(
        "grad_sync",
        r"torch/distributed/distributed_c10d\.py$",
        "all_reduce all_gather_into_tensor all_gather reduce_scatter_tensor reduce_scatter reduce"
        " broadcast broadcast_object_list gather_object all_gather_object scatter recv send isend"
        " irecv batch_isend_irecv barrier monitored_barrier wait recv_object_list all_to_all"
        " all_to_all_single destroy_process_group",
    ),
    _rule("grad_sync", r"torch/distributed/_functional_collectives\.py$"),
    _rule("grad_sync", r"torch/distributed/distributed_c10d\.py$", "init_process_group new_group"),
    _rule("grad_sync", r"torch/distributed/rendezvous"),
    _rule("grad_sync", r"deepspeed/comm/"),
    _rule(
        "grad_sync",
        r"deepspeed/runtime/",
        "allreduce_gradients buffered_allreduce_fallback __avg_scatter_grads fetch_sub_module"
        " reduce_independent_p_g_buckets_and_remove_grads __all_gather_params _bcast_pipe_scalar"
        " _reduce_outputs _aggregate_total_loss _exec_recv_activations _exec_recv_grads"
        " _exec_reduce_grads _exec_send_activations _exec_send_grads",
    ),
    _rule(
        "grad_sync",
        r"megatron/core/",
        "finish_grad_sync start_param_sync finish_param_sync finalize_model_grads recv_forward"
        " recv_backward send_forward_recv_backward send_backward_recv_forward _communicate",
    ),
    _rule("grad_sync", _LIGHTNING + r".*distributed\.py$", "_sync_ddp _sync_ddp_if_available"),
    _rule("grad_sync", _LIGHTNING + r".*strategies/.*ddp\.py$", "barrier broadcast reduce"),
    _rule("grad_sync", _LIGHTNING, "_broadcast_sigterm_tensor"),
    _rule(
        "grad_sync",
        r"accelerate/accelerator\.py$",
        "wait_for_everyone gather gather_for_metrics reduce",
    ),
    _rule("grad_sync", r"torch/nn/parallel/distributed\.py$", "_pre_forward _sync_buffers"),
    _rule(
        "grad_sync",
        r"torch/distributed/(?:fsdp|_composable)/",
        "_wait_for_computation_stream _post_backward_final_callback wait_for_unshard"
        " finalize_backward foreach_all_gather foreach_reduce",
    ),
    # the input pipeline, in the rank
    _rule(
        "data_worker_start",
        r"torch/utils/data/dataloader\.py$",
        "_get_iterator _shutdown_workers __del__ _reset",
    ),
    _rule("data_worker_start", r"multiprocessing/popen_"),
    _rule("data_sampler", r"/samplers?(?:/|\.py$)|torch/utils/data/sampler\.py$"),
    _rule("data_sampler", r"torch/utils/data/dataloader\.py$", "_next_index _try_put_index"),
    _rule("data_sampler", r"lhotse/dataset/sampling/"),
    _rule("data_inline", r"torch/utils/data/_utils/(?:fetch|collate)\.py$"),
    _rule(
        "data_inline",
        r"/(?:torchvision/transforms|torchvision/io|albumentations|PIL|cv2|torchaudio|lhotse"
        r"|datasets|tokenizers|decord|pyarrow|h5py|zarr|webdataset|kornia/augmentation"
        r"|monai/transforms|imgaug)/",
    ),
    _rule("data_inline", r"transformers/(?:tokenization_|data/data_collator)"),
    _rule("data_wait", r"torch/utils/data/dataloader\.py$"),
    _rule("data_wait", r"torch/utils/data/_utils/pin_memory\.py$"),
    _rule("data_wait", _LIGHTNING + r".*loops/fetchers\.py$"),
    _rule("data_wait", _LIGHTNING + r".*combined_loader\.py$"),
    _rule("data_wait", r"accelerate/data_loader\.py$", "__iter__ __next__ _fetch_batches"),
    _rule("data_wait", r"transformers/trainer\.py$", "get_batch_samples"),
    _rule(
        "data_wait",
        r"batchgenerators/dataloading/",
        "next __next__ __get_next_item",
    ),
    _rule("data_wait", r"deepspeed/runtime/pipe/engine\.py$", "_next_batch _exec_load_micro_batch"),
    _rule("data_wait", r"megatron/", "get_batch get_batch_on_this_tp_rank broadcast_data"),
    _rule("data_wait", r"composer/trainer/trainer\.py$", "_iter_dataloader"),
    _rule("data_wait", r"streaming/base/(?:dataset|stream|dataloader)\.py$"),
    _rule("data_wait", r"torchtitan/", "batch_generator post_dataloading_process"),
    _rule("data_wait", r"detectron2/data/common\.py$"),
    _rule("data_wait", r"detectron2/engine/train_loop\.py$", "_data_loader_iter"),
    _rule("data_wait", r"keras/src/trainers/(?:epoch_iterator|data_adapters/)"),
    _rule("data_wait", r"tensorflow/python/data/|nvidia/dali/"),
    _rule("data_wait", r"ray/data/"),
    _rule("data_wait", r"grain/"),
    # copies
    _rule("h2d_copy", r"accelerate/utils/operations\.py$", "send_to_device recursively_apply"),
    _rule(
        "h2d_copy",
        _LIGHTNING,
        "batch_to_device transfer_batch_to_device move_data_to_device _transfer_batch_to_device",
    ),
    _rule("h2d_copy", r"composer/devices/"),
    _rule("h2d_copy", r"transformers/trainer\.py$", "_prepare_inputs _prepare_input"),
    _rule("h2d_copy", r"ultralytics/.*train\.py$", "preprocess_batch"),
    _rule("h2d_copy", r"mmengine/model/base_model/data_preprocessor\.py$"),
    _rule("h2d_copy", r"jax/_src/", "device_put _device_put_impl batched_device_put shard_args"),
    _rule("d2h_copy", r"jax/_src/", "device_get"),
    # the host waits for the device
    _rule("sync", r"torch/cuda/(?:__init__|streams)\.py$", "synchronize"),
    _rule("sync", r"torch/cuda/memory\.py$", "empty_cache memory_stats memory_snapshot"),
    _rule("sync", r"jax/_src/", "block_until_ready _value __array__ __float__"),
    _rule("sync", r"warp/context\.py$", "synchronize"),
    _rule("sync", r"deepspeed/utils/timer\.py$|megatron/core/timers\.py$"),
    # optimizer
    _rule("optimizer", r"torch/optim/"),
    _rule("optimizer", r"torch/amp/grad_scaler\.py$"),
    _rule("optimizer", r"torch/nn/utils/clip_grad\.py$"),
    _rule("optimizer", r"accelerate/optimizer\.py$"),
    _rule("optimizer", _LIGHTNING, "optimizer_step _optimizer_step clip_gradients"),
    _rule("optimizer", r"deepspeed/", "_take_model_step _optimizer_step unscale_and_clip_grads"),
    _rule("optimizer", r"deepspeed/ops/"),
    _rule("optimizer", r"megatron/core/optimizer/"),
    _rule("optimizer", r"mmengine/optim/"),
    _rule("optimizer", r"apex/optimizers/|bitsandbytes/optim/|torchao/optim/"),
    _rule("optimizer", r"torch/distributed/tensor/"),
    _rule("optimizer", r"optax/"),
    # backward
    _rule("backward", r"torch/autograd/"),
    _rule("backward", r"torch/_tensor\.py$", "backward"),
    _rule("backward", r"accelerate/accelerator\.py$", "backward"),
    _rule("backward", r"deepspeed/runtime/", "backward"),
    _rule("backward", _LIGHTNING, "backward"),
    _rule("backward", r"megatron/core/pipeline_parallel/", "backward_step"),
    # forward
    _rule("forward", r"torch/nn/(?:modules|functional|parallel)(?:/|\.py$)"),
    _rule("forward", r"torch/(?:functional|_tensor|_ops|_refs|_prims)(?:/|\.py$)"),
    _rule("forward", r"torch/utils/checkpoint\.py$"),
    _rule("forward", r"/(?:torchvision|timm|peft|diffusers|flash_attn|xformers)/"),
    _rule("forward", r"transformers/(?:models|integrations|modeling_|activations|loss)"),
    _rule("forward", r"transformers/trainer\.py$", "training_step compute_loss"),
    _rule("forward", r"trl/trainer/", "compute_loss _chunked_ce_forward"),
    _rule("forward", _LIGHTNING, "training_step _training_step"),
    _rule("forward", r"megatron/core/", "forward_step forward_backward_no_pipelining"),
    _rule("forward", r"composer/trainer/trainer\.py$", "_train_microbatch"),
    _rule("forward", r"deepspeed/runtime/", "forward _exec_forward_pass"),
    _rule("forward", r"mmengine/model/", "train_step _run_forward"),
    _rule("forward", r"torchtitan/", "forward_backward_step"),
    _rule("forward", r"jax/_src/|/jaxlib/|/flax/|/equinox/|/haiku/"),
    _rule("forward", r"tensorflow/python/eager/"),
    _rule("forward", r"keras/src/(?:backend|layers|ops|models)/"),
    _rule("forward", r"torch/_inductor/|torch/_functorch/|torch/_dynamo/"),
    _rule("forward", r"/torchinductor_"),
    _rule("forward", r"", "forward __call_impl _call_impl"),
    # others
    _rule("import", r"importlib/(?:_bootstrap|__init__)|<frozen importlib"),
    _rule("import", r"", "from_pretrained"),
    _rule("gc", r"torchtitan/tools/utils\.py$", "collect"),
    _rule("launcher", r"torch/distributed/(?:run|launcher|elastic)"),
    _rule("launcher", r"accelerate/commands/"),
)

CALL_PHASES = {
    "copy_to_device": "h2d_copy",
    "copy_to_host": "d2h_copy",
    "scalar": "sync",
    "synchronize": "sync",
    "collective": "grad_sync",
    "gc": "gc",
    "sleep": "user",
}
"""What the source line of a leaf says where the C call itself leaves no frame."""

CONTEXTS: tuple[Rule, ...] = (
    _rule("evaluation", r"", "evaluate evaluate_and_print_results eval_batch evaluation_loop"),
    _rule(
        "evaluation", r"", "validation_step perform_actual_validation validate val_step _eval_loop"
    ),
    _rule("evaluation", r"", "inference_on_dataset _do_eval _run_evaluators _evaluation_step"),
    _rule("evaluation", r"", "run_sanity_check _run_sanity_check validation_epoch eval_epoch"),
    _rule("evaluation", r"loops/evaluation_loop\.py$"),
    _rule("evaluation", r"/(?:sklearn/metrics|pycocotools|seqeval|sacrebleu)/"),
)
"""Containers: everything below such a frame happens during an evaluation."""

NEUTRAL = re.compile(
    r"torch/utils/_contextlib\.py$|torch/distributed/c10d_logger\.py$|elastic/multiprocessing/errors"
    r"|torch/_compile\.py$|deepspeed/utils/nvtx\.py$|/trainer/call\.py$"
)
"""Wrappers that never decide (with ``_call_impl`` and ``_fn``, which the rules leave out)."""


def matches(name: str, file: str, rules: Iterable[Rule] = RULES) -> list[str]:
    """Phases whose rules match a frame; ``name`` is the last part of its qualified name."""
    return [rule.phase for rule in rules if rule.matches(name, file)]
