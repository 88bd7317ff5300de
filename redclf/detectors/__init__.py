"""Detectors of redundant steps, all under the protocol of `redclf.detectors.base`."""
