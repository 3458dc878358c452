"""Accelerator vendors: the word by which services select runtimes and by which Pods are adapted to
hardware."""

from enum import StrEnum


class Vendor(StrEnum):
    """Who makes the accelerator; `cpu` means that there is none."""

    NVIDIA = "nvidia"
    ASCEND = "ascend"
    AMD = "amd"
    INTEL = "intel"
    CPU = "cpu"
