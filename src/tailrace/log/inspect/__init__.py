"""What `tailrace log` shows and checks: survey, dump, explain, verify, repair."""
