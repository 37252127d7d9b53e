"""The passes, each by itself: kernels over bytes and tables."""
