"""The policies that come with the pipeline."""
