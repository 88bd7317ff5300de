"""The training pipeline: data, augmentation, fitting, cross-validation, export."""
