"""The tests. They mirror the package; `scenarios`, `interop`, `bench` and `house` stand beside."""
