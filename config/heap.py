"""How the C library keeps the memory of pages.

A page makes some buffers of a few hundred kilobytes and frees them again. glibc gives such memory back to the
kernel each time and asks for it anew: a third of a page's time went into page faults.
"""

import ctypes

# Source: malloc.h of glibc; meaning and defaults in mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_MIB = 1 << 20


def keep() -> None:
    """Keep up to 32 MiB for the next page, all threads in one heap; nothing where the C library has no such switches."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, 8 * _MIB)
        mallopt(_TRIM_THRESHOLD, 32 * _MIB)
