"""The port that people and programs reach terminals through."""
