"""What an NVML failure means to a person, and what mends it."""

from __future__ import annotations

LIBRARY: dict[str, tuple[str, str]] = {
    "LIBRARY_NOT_FOUND": (
        "no NVIDIA driver library (libnvidia-ml.so.1) on this host",
        "install the NVIDIA driver; in a container, start it with the NVIDIA container runtime "
        "(--gpus all) and NVIDIA_DRIVER_CAPABILITIES that include 'utility'",
    ),
    "DRIVER_NOT_LOADED": (
        "the NVIDIA kernel driver is not loaded",
        "load it with 'modprobe nvidia' and look for its errors in 'dmesg'",
    ),
    "LIB_RM_VERSION_MISMATCH": (
        "the driver library and the loaded kernel driver are of different versions: "
        "the driver was updated while it was in use",
        "reboot, or reload the driver with every process off the GPUs; then restart gpuwhy",
    ),
    "NO_PERMISSION": (
        "access to the NVIDIA devices is refused",
        "check the mode of /dev/nvidia* and the device rules of the container (--gpus all)",
    ),
    "UNKNOWN": (
        "the driver answers 'Unknown Error': access to /dev/nvidia* was most likely taken from "
        "this container by a 'systemctl daemon-reload' on the host",
        "restart the container; lastingly: set CDI or cgroupfs as cgroup driver, or create the "
        "/dev/char links ('nvidia-ctk system create-dev-char-symlinks')",
    ),
    "GARBAGE": (
        "the driver's answers make no sense: library and driver do not fit together",
        "install nvidia-ml-py as new as the driver (pip install -U nvidia-ml-py), restart gpuwhy",
    ),
    "NO_GPU": (
        "the driver shows no GPU",
        "check 'lspci' and 'dmesg'; in a container, check NVIDIA_VISIBLE_DEVICES or --gpus",
    ),
    "IRQ_ISSUE": (
        "the kernel reports an interrupt problem with a GPU",
        "see 'dmesg'; reseat or replace the card",
    ),
    "OPERATING_SYSTEM": (
        "the operating system blocks the driver library",
        "check seccomp and SELinux rules for /dev/nvidia*",
    ),
}
LIBRARY["NOT_FOUND"] = LIBRARY["NO_GPU"]
LIBRARY["UNINITIALIZED"] = (
    "the driver library lost its connection to the driver: it was reloaded",
    "nothing: gpuwhy connects again by itself",
)

LOST_GPU: dict[str, tuple[str, str]] = {
    "GPU_IS_LOST": (
        "the GPU has fallen off the bus",
        "see 'dmesg' for its Xid; drain the node and reset the GPU or reboot",
    ),
    "RESET_REQUIRED": (
        "the GPU needs a reset before it can be used again",
        "end the processes on it, stop gpuwhy, then 'nvidia-smi --gpu-reset'",
    ),
    "GPU_NOT_FOUND": (
        "the driver does not show the GPU any more",
        "see 'dmesg' and 'lspci'; in a container, restart it",
    ),
    "NO_ANSWER": (
        "the GPU refuses every question",
        "see 'nvidia-smi' and 'dmesg'",
    ),
    "UNKNOWN": (
        "the GPU answers 'Unknown Error' to every question",
        LIBRARY["UNKNOWN"][1] + "; if it persists on the host, see 'dmesg'",
    ),
}

MIG = "the driver gives it for no GPU in MIG mode"
UNIFIED = "the GPU has no memory of its own, it works in the host's"
VIRTUAL = "a virtual GPU does not give it to its guest"


def explain_library(code: str) -> tuple[str, str]:
    """(why, remedy) where NVML as a whole does not answer."""
    fallback = LOST_GPU.get(code, (f"NVML fails with {code}", "see 'dmesg' and 'nvidia-smi'"))
    return LIBRARY.get(code, fallback)


def explain_lost(code: str) -> tuple[str, str]:
    """(why, remedy) for one GPU that does not answer."""
    return LOST_GPU.get(code, (f"the GPU fails with {code}", "see 'dmesg' and 'nvidia-smi'"))


def explain_refusal(code: str, *, mig: bool = False, virtual: bool = False) -> tuple[str, str]:
    """(why, remedy) for one signal that the driver does not give on this GPU."""
    if code == "NO_PERMISSION":
        return (
            "the driver refuses it to this user",
            "run gpuwhy as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
        )
    if code == "FUNCTION_NOT_FOUND":
        return "the installed driver is too old for it", "update the NVIDIA driver"
    if mig:
        return MIG, "none; GPM stands in for it on Hopper and newer"
    if virtual:
        return VIRTUAL, "observe on the host of the virtual machine, or pass the GPU through"
    if code in ("NOT_FOUND", "NO_DATA"):
        return "the driver holds no samples of it for this GPU", ""
    return f"this GPU or driver does not support it ({code})", ""
