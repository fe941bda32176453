"""Knowledge bases that the supervisor searches. `multi_agents` decides which of their tools the model gets."""
