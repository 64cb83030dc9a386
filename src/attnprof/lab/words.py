"""The words on the plots, by language."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PLOTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "en": {
            "x": "sequence length N",
            "y_bytes": "bytes moved (fp32, one head, d = 64)",
            "bytes_title": "Bytes moved by naive and flash attention",
            "bytes_subtitle": "Lines: formulas, O counted on both sides. Dots: measured on the CPU, in an exact LRU "
            "memory of {M}.\nThe dashed rule spans from all that any method must move to what naive moves.",
            "naive_line": "naive: (16 N d + 16 N²) bytes",
            "flash_line": "flash, B_r = B_c = 64: 8 N d (1 + N/B_r) bytes, asked of the next memory",
            "least_line": "compulsory: 16 N d bytes; flash beyond a memory that holds K and V",
            "annotation": "N = {N}: the {score} score matrix no longer\nfits this machine's {l2} L2. Flash moves\n"
            "{ratio:.3g}x fewer bytes to its tiles, {dram:.3g}x fewer\nbeyond a memory that holds K and V.",
            "ratio_title": "Arithmetic intensity: flash over naive, and where both stand on this machine",
            "y_ratio": "intensity of flash / intensity of naive",
            "ratio_panel": "Intensity ratio (same FLOPs: the inverse ratio of bytes)",
            "ratio_subtitle": "Lines: formulas, O on both sides. Dots: measured (d = 64, B_r = 64).",
            "ratio_line": "d = {d}, B_r = {B_r}: tends to 2 B_r/d = {limit}",
            "x_intensity": "arithmetic intensity (FLOP/byte)",
            "y_flops": "FLOP/s",
            "bandwidths": "bandwidth measured here",
            "roofline_panel": "Roofline at N = 2048, d = 64, fp32",
            "roofline_subtitle": "Ceilings and rates measured on this machine's CPU.",
            "peak": "matmul ceiling {peak}",
            "naive_point": "naive {intensity:.3g}",
            "flash_point": "flash {intensity:.3g}\n(to its tiles)",
            "flash_dram_point": "flash {intensity:.3g}\n(beyond the cache)",
        },
        "es": {
            "x": "longitud de secuencia N",
            "y_bytes": "bytes movidos (fp32, una cabeza, d = 64)",
            "bytes_title": "Bytes que mueven la atención naive y la flash",
            "bytes_subtitle": "Líneas: fórmulas, con O en ambos lados. Puntos: medido en la CPU, en una memoria LRU "
            "exacta de {M}.\nLa línea discontinua va de lo que todo método debe mover a lo que mueve naive.",
            "naive_line": "naive: (16 N d + 16 N²) bytes",
            "flash_line": "flash, B_r = B_c = 64: 8 N d (1 + N/B_r) bytes, pedidos a la memoria siguiente",
            "least_line": "obligatorio: 16 N d bytes; flash más allá de una memoria que guarda K y V",
            "annotation": "N = {N}: la matriz de scores de {score}\nya no cabe en la L2 de {l2} de esta máquina.\n"
            "Flash mueve {ratio:.3g} veces menos hacia sus bloques,\n{dram:.3g} veces menos más allá de K y V.",
            "ratio_title": "Intensidad aritmética: flash sobre naive, y dónde está cada una en esta máquina",
            "y_ratio": "intensidad de flash / intensidad de naive",
            "ratio_panel": "Razón de intensidades (mismos FLOP: razón inversa de bytes)",
            "ratio_subtitle": "Líneas: fórmulas, O en ambos lados. Puntos: medido (d = 64, B_r = 64).",
            "ratio_line": "d = {d}, B_r = {B_r}: tiende a 2 B_r/d = {limit}",
            "x_intensity": "intensidad aritmética (FLOP/byte)",
            "y_flops": "FLOP/s",
            "bandwidths": "ancho de banda medido aquí",
            "roofline_panel": "Roofline con N = 2048, d = 64, fp32",
            "roofline_subtitle": "Techos y velocidades medidos en la CPU de esta máquina.",
            "peak": "techo de matmul {peak}",
            "naive_point": "naive {intensity:.3g}",
            "flash_point": "flash {intensity:.3g}\n(hacia sus bloques)",
            "flash_dram_point": "flash {intensity:.3g}\n(tras la caché)",
        },
    }
)
LANGUAGES = tuple(PLOTS)
