"""Keys as services really issue them, made at random from their published forms: none is shown.

Each is tried where a command line may hold one: alone, as the value of an option whose name tells
nothing, in a configuration override, in a URL, within quotes.
"""

from __future__ import annotations

import random
import re
import string

import pytest

from gpuwhy.observe.secrets import mask

HEX = "0123456789abcdef"
ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
URL = ALNUM + "-_"
B64 = ALNUM + "+/"
SETS = {"h": HEX, "a": ALNUM, "U": UPPER, "u": URL, "b": B64, "d": string.digits,
        "l": string.ascii_lowercase + string.digits}  # fmt: skip

FORMS = {
    "Alibaba access key": "LTAI5t{a20}",
    "Anthropic": "sk-ant-api03-{u93}AA",
    "Atlassian": "ATATT3xFfGF0{u180}",
    "AWS access key": "AKIA{U16}",
    "AWS secret key": "{b40}",
    "AWS temporary key": "ASIA{U16}",
    "Azure storage key": "{b86}==",
    "ClearML secret": "{a50}",
    "Cohere, Mistral and other plain keys": "{a40}",
    "Comet": "{a25}",
    "Databricks": "dapi{h32}",
    "DigitalOcean": "dop_v1_{h64}",
    "Discord bot": "{a24}.{a6}.{u38}",
    "Docker Hub": "dckr_pat_{u27}",
    "Feishu robot": "https://open.feishu.cn/open-apis/bot/v2/hook/{h8}-{h4}-{h4}-{h4}-{h12}",
    "Fireworks": "fw_{a24}",
    "GitHub classic": "ghp_{a36}",
    "GitHub fine-grained": "github_pat_{a22}_{a59}",
    "GitHub server": "ghs_{a36}",
    "GitLab": "glpat-{u20}",
    "Google API": "AIza{u35}",
    "Google OAuth": "ya29.{u80}",
    "Google OAuth secret": "GOCSPX-{u28}",
    "Grafana cloud": "glc_{b60}",
    "Grafana service account": "glsa_{a32}_{h8}",
    "Groq": "gsk_{a52}",
    "HashiCorp Vault": "hvs.{u95}",
    "Hugging Face": "hf_{a34}",
    "JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJ{u40}.{u43}",
    "LangSmith": "lsv2_pt_{h32}_{h10}",
    "Linear": "lin_api_{a40}",
    "Mailgun": "key-{h32}",
    "MongoDB address": "mongodb+srv://train:{a16}@cluster0.mongodb.net/db",
    "Neptune": "eyJhcGlfYWRkcmVzcyI6{a120}==",
    "New Relic": "NRAK-{U27}",
    "NGC": "nvapi-{u64}",
    "Notion": "ntn_{a46}",
    "npm": "npm_{a36}",
    "OpenAI": "sk-{a48}",
    "OpenAI project": "sk-proj-{u120}",
    "OpenRouter": "sk-or-v1-{h64}",
    "Perplexity": "pplx-{a48}",
    "Pinecone": "pcsk_{a60}",
    "PostgreSQL address": "postgresql://mlflow:{a12}@db.internal:5432/mlflow",
    "PyPI": "pypi-AgEIcHlwaS5vcmc{u150}",
    "Redis address": "redis://:{a14}@cache:6379/0",
    "Replicate": "r8_{a37}",
    "SendGrid": "SG.{u22}.{u43}",
    "Sentry address": "https://{h32}@o4507.ingest.sentry.io/45",
    "Slack bot": "xoxb-{d12}-{d12}-{a24}",
    "Slack webhook": "https://hooks.slack.com/services/T{U8}/B{U10}/{a24}",
    "Stripe": "sk_live_{a24}",
    "Telegram bot": "{d10}:AA{u33}",
    "Tencent access key": "AKID{a32}",
    "Terraform": "{a14}.atlasv1.{u67}",
    "Twilio": "SK{h32}",
    "Volcengine access key": "AKLT{a44}",
    "Weights & Biases": "{h40}",
    "Weights & Biases, new": "wandb_v1_{u77}",
    "xAI": "xai-{a80}",
    "kubeconfig or cluster token": "{l6}.{l16}{a40}",
    "hash that is a password (32 digits)": "{h32}",
}
ADDRESSES = {name for name, form in FORMS.items() if "://" in form}
NEUTRAL = ("{}", "--destination={}", "--extra={}", "+logger.target={}", '"{}"', "note:{}",
           "https://host/api/v1/{}", "a,{},b")  # fmt: skip


def made(name: str, seed: int) -> str:
    chance = random.Random(f"{name} {seed}")

    def fill(found: re.Match[str]) -> str:
        return "".join(chance.choice(SETS[found[1]]) for _ in range(int(found[2])))

    return re.sub(r"\{([a-zA-Z])(\d+)\}", fill, FORMS[name])


def parts(name: str, secret: str) -> list[str]:
    """What must not be shown of it: of an address the part that is secret, of the rest any long
    piece."""
    if name in ADDRESSES:
        if "@" in secret:
            return [re.search(r"//(?:[^:@/]*:)?([^@]+)@", secret)[1]]  # type: ignore[index]
        return [secret.rsplit("/", 1)[-1]]
    return [secret[i : i + 12] for i in range(max(1, len(secret) - 11)) if i > 3]


@pytest.mark.parametrize("name", FORMS)
def test_no_key_is_shown(name: str) -> None:
    for seed in range(20):
        secret = made(name, seed)
        for around in NEUTRAL[:1] if name in ADDRESSES else NEUTRAL:
            shown = mask(["python3", "train.py", around.format(secret)], longest=1000)
            left = [part for part in parts(name, secret) if part in shown]
            assert not left, f"{around.format(secret)} is shown as {shown}"


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(
    "option", ["--api-key", "--token", "--wandb_api_key", "--db.password", "-secret", "--HF_TOKEN"]
)
def test_any_value_of_an_option_that_names_a_secret_is_masked(name: str, option: str) -> None:
    secret = made(name, 99)
    for argv in ([option, secret], [f"{option}={secret}"]):
        assert secret[:40] not in mask(["python3", "train.py", *argv], longest=1000)


@pytest.mark.parametrize(
    "plain",
    [
        "/mnt/data/experiments/2026-07-14_llama3_8b_instruct_sft_lr2e-5_bs512/checkpoint-12000",
        "meta-llama/Meta-Llama-3.1-8B-Instruct",
        "--model_name_or_path=Qwen/Qwen2.5-Coder-32B-Instruct-GPTQ-Int4",
        "--deepspeed=configs/zero3_offload_bf16.json",
        "s3://bucket/datasets/RedPajama-Data-1T-Sample/train-00000-of-00042.parquet",
        "--rdzv_endpoint=10.0.0.12:29400",
        "experiment_with_a_rather_long_name_of_small_letters_and_no_digits",
        "optimizer.learning_rate=0.00030000000000000003",
        "--wandb-project=multimodal-pretraining-ablation-Study7",
        "trainer.callbacks.ModelCheckpoint.every_n_train_steps=1000",
        "--cuda-visible-devices=GPU-6f1c0e9a-13b5-7c1e-2f1d-9a3b5c7d9e1f",
    ],
)
def test_what_tells_one_job_from_another_stays(plain: str) -> None:
    assert mask(["python3", "train.py", plain], longest=1000) == f"python3 train.py {plain}"
