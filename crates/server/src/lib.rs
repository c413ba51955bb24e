//! The sans-IO server: address space, sessions, services, subscriptions. The modules are joined in the next step.
