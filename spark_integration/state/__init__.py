"""What outlives a run: checkpoints, manifests of archives, small files on any Hadoop file system."""
