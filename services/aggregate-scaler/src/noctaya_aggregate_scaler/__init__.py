"""The aggregate scaler: one view of demand over several gateways, served to KEDA."""
