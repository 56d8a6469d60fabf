"""Forward mode: dual-number arrays, a primal and its tangents."""
