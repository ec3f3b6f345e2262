"""`tailrace job`: one module for each verb."""
