"""The laboratory: bytes moved by naive and flash attention, derived, measured, plotted and explained."""
