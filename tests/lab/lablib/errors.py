# SPDX-License-Identifier: BSD-2-Clause
"""What goes wrong in a lab, as exceptions; every module here raises only these of its own."""


class LabError(Exception):
    """Something failed; the text says what, where and what to do."""


class LabTimeout(LabError):
    """Something took longer than its caller allowed."""
