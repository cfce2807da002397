"""How values get better: temporal-difference learning on CPU and GPU, and the folders of its runs."""
