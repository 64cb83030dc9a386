"""Which attention backend runs a call, why not the others, and the gate before every call."""
