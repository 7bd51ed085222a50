"""TLS on the broker's connections: certificates, handshakes, transports."""
