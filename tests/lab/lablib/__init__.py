# SPDX-License-Identifier: BSD-2-Clause
"""Two emulated hosts with RDMA over Converged Ethernet, for tests: see ../README.md."""

from .errors import LabError, LabTimeout
from .lab import Lab
from .lockstep import Lockstep
from .process import Process, Result

__all__ = ["Lab", "LabError", "LabTimeout", "Lockstep", "Process", "Result"]
