"""What is done with histories: replayed, explored, simulated, judged, measured, drawn."""
