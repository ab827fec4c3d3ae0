package natsbus

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Health returns an error if this process is not connected to the cluster, or if its server lags behind the others.
func (c *Cluster) Health() error {
	if status := c.conn.Status(); status != nats.CONNECTED {
		err := c.conn.LastError()
		if err == nil {
			err = errors.New("no connection")
		}
		return fmt.Errorf("connection to the cluster's servers: %s", describe(err))
	}
	if c.server == nil {
		return nil
	}
	if h := c.server.Healthz(&server.HealthzOptions{}); h.Error != "" {
		return fmt.Errorf("server %s: %s", c.cfg.Listen, h.Error)
	}
	return nil
}
