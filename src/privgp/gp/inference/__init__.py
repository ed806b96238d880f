"""What measured numbers say: evidence, learning, and the posterior given them."""
