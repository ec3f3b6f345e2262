"""`tailrace log`: one module for each verb."""
