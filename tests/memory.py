"""The environment in which a write beyond a block of memory ends the process at once.

`MALLOC_CHECK_` acts only where the debugging allocator is preloaded; the other two let every
processor compute as one that has AVX2 and nothing above it. `make test-memory` runs everything so.
"""

MEMORY_CHECK = {
    "LD_PRELOAD": "libc_malloc_debug.so.0",
    "MALLOC_CHECK_": "3",
    "MALLOC_PERTURB_": "165",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "ATEN_CPU_CAPABILITY": "avx2",
}
