"""slurmctld of one Controller."""
