"""What figures are drawn from: series and spans."""
