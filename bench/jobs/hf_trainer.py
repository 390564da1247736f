"""Train a GPT-2 with the Hugging Face Trainer, on one GPU or under torchrun."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import torch
from clock import Clock
from corpus import VOCABULARY, Corpus, text_loader
from options import Options, load
from pace import Pace, measure
from reporting import Report, build_report
from torch import Tensor
from torch.utils.data import DataLoader, Subset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


def collate(items: list[Tensor]) -> dict[str, Tensor]:
    """Inputs and labels as the model wants them."""
    tokens = torch.stack(items)[:, :-1]
    return {"input_ids": tokens, "labels": tokens.clone()}


class TimedTrainer(Trainer):
    """The Trainer as it is, with the clock read between its parts."""

    clock: Clock
    last_loss: Any = None

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Forward."""
        result = super().compute_loss(model, inputs, *args, **kwargs)
        self.clock.lap("forward")
        return result

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """Forward and backward."""
        self.last_loss = super().training_step(*args, **kwargs)
        self.clock.lap("backward")
        return self.last_loss

    def _get_num_items_in_batch(self, *args: Any, **kwargs: Any) -> Any:
        self.clock.lap("data_wait")
        count = super()._get_num_items_in_batch(*args, **kwargs)
        self.clock.lap("sync" if self.args.world_size == 1 else "grad_sync")
        return count

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluation, as a pause."""
        with self.clock.pause("evaluation"):
            return super().evaluate(*args, **kwargs)

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        with self.clock.pause("checkpoint"):
            super()._save_checkpoint(*args, **kwargs)


class Reporter(TrainerCallback):
    """Reports after each step, and ends the training when the clock says so."""

    def __init__(self, trainer: TimedTrainer, clock: Clock, report: Report) -> None:
        self.trainer, self.clock, self.report = trainer, clock, report

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """The batch has come."""
        self.clock.lap("data_wait")

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Gradients are clipped."""
        self.clock.lap("sync")

    def on_step_end(self, _args: Any, state: Any, control: Any, **_: Any) -> None:
        """The optimizer has run."""
        self.clock.lap("optimizer")
        self.report(state.global_step, self.trainer.last_loss)
        batches = getattr(self.trainer.callback_handler.train_dataloader, "_iterator", None)
        if self.clock.step(state.global_step - 1, batches):
            control.should_training_stop = True


def build_trainer(options: Options, model: Any, loader: DataLoader[Tensor]) -> TimedTrainer:
    """A Trainer with the variant's habits of logging, saving and evaluating."""
    evaluate, save = options.get("evaluate_every", 0), options.get("checkpoint_every", 0)
    on_gpu = torch.cuda.is_available()
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        max_steps=10**6,
        per_device_train_batch_size=loader.batch_size or 1,
        dataloader_num_workers=loader.num_workers,
        dataloader_persistent_workers=loader.num_workers > 0,
        dataloader_pin_memory=on_gpu,
        dataloader_drop_last=True,
        bf16=on_gpu,
        use_cpu=not on_gpu,
        ddp_backend="gloo" if options.world_size > 1 and not on_gpu else None,
        logging_steps=options.get("logging_steps", 50),
        eval_strategy="steps" if evaluate else "no",
        eval_steps=evaluate or None,
        save_strategy="steps" if save else "no",
        save_steps=save or 500,
        save_total_limit=1,
        optim="adamw_torch_fused" if on_gpu else "adamw_torch",
        report_to=[],
        prediction_loss_only=True,
        disable_tqdm=True,
    )
    held_out = Subset(loader.dataset, range(options.size(512, 16)))
    return TimedTrainer(
        model=model,
        args=arguments,
        train_dataset=loader.dataset,
        eval_dataset=held_out if evaluate else None,
        data_collator=collate,
    )


def bare_pace(model: Any, sample: Tensor) -> Pace:
    """The pace of the model without the Trainer, with an optimizer that changes nothing."""
    on_gpu = sample.is_cuda
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, fused=on_gpu)

    def train_step() -> None:
        with torch.autocast(sample.device.type, torch.bfloat16):
            loss = model(input_ids=sample, labels=sample).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return measure(train_step, torch.cuda.synchronize if on_gpu else int)


def main() -> None:
    """Run the variant on this rank."""
    options = load()
    torch.manual_seed(0)
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", options.local_rank) if on_gpu else torch.device("cpu")
    clock = Clock(options, device)
    if on_gpu:
        torch.cuda.set_device(device)
    context, batch = options.size(1024, 64), options.size(16, 4)
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=context,
        n_embd=options.size(768, 64),
        n_layer=options.size(12, 2),
        n_head=options.size(12, 2),
    )
    model = GPT2LMHeadModel(config).to(device)
    sample = torch.randint(VOCABULARY, (batch, context), device=device)
    pace = bare_pace(model, sample)
    clock.header(pace)
    starts = clock.start()
    loader = text_loader(options, pace, batch, context, starts)
    assert isinstance(loader.dataset, Corpus)
    trainer = build_trainer(options, model, loader)
    trainer.clock = clock
    trainer.add_callback(Reporter(trainer, clock, build_report(options, pace, clock, starts)))
    clock.lap("startup")
    trainer.train()
    os._exit(0)


if __name__ == "__main__":
    main()
