"""The ready scenarios, a file for each thing that they are about; `Scenario` has them all."""
