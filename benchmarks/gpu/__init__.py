"""Original and fixed models on one GPU: `python -m benchmarks.gpu`."""
