"""The steady state of a network under constant gradients, and the weights that improve it."""
