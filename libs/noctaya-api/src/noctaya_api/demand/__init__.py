"""The demand core that gateway and aggregate scaler share: signal, report and ledger."""
