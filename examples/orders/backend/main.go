// Command backend stands for the product's own code: it brings what a customer
// writes to the run of their ticket, and tells a run that a parcel has left.
//
//	backend -ticket t-1 -customer c-1 "Please bring order 77 on Saturday"
//	backend -ticket t-1 -shipped
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"example.com/orders"
	"interlock/agent"
	"interlock/signals"
	"interlock/starter"
)

const tenant = "acme"

func main() {
	ticket := flag.String("ticket", "t-1", "key of the run")
	customer := flag.String("customer", "c-1", "who writes")
	shipped := flag.Bool("shipped", false, "the parcel has left")
	flag.Parse()
	if err := run(context.Background(), *ticket, *customer, flag.Arg(0), *shipped); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, ticket, customer, text string, shipped bool) error {
	options, err := envconfig.LoadDefaultClientOptions() // TEMPORAL_* and temporal.toml, as the worker reads them
	if err != nil {
		return err
	}
	c, err := client.Dial(options)
	if err != nil {
		return err
	}
	defer c.Close()
	runs := starter.New(c, starter.WithDeadline(time.Minute))
	if shipped {
		return parcelLeft(ctx, runs, ticket)
	}
	answer, err := ask(ctx, runs, ticket, customer, text)
	fmt.Println(answer)
	return err
}

// ask starts the ticket's run, where there is none yet, and says something to it.
// Starting the same run again does nothing. The answer is what the customer sees.
func ask(ctx context.Context, runs *starter.Starter, ticket, customer, text string) (string, error) {
	run, err := runs.Start(ctx, starter.Start{Agent: "orders", Tenant: tenant, Key: ticket,
		Principal: agent.Principal{Subject: "backend"}, User: customer, Body: orders.Start{CustomerID: customer}})
	if err != nil {
		return "", err
	}
	said, err := runs.Say(ctx, run.Address, signals.Message{ID: rand.Text(), Principal: agent.Principal{Subject: customer}, Text: text})
	if err != nil {
		return "", err
	}
	return show(said.News), nil
}

// show is what has come of a message: a reply, a question with the values that
// the customer is to confirm, or a wait for a colleague.
func show(n signals.News) string {
	var lines []string
	if n.Reply != nil {
		lines = append(lines, n.Reply.Text)
	}
	for _, g := range n.Gates {
		if g.Kind != agent.KindAsk {
			lines = append(lines, "A colleague decides about it.")
			continue
		}
		lines = append(lines, g.Title)
		for _, name := range g.Reads {
			lines = append(lines, "  "+name+": "+value(g.Shown[name]))
		}
	}
	if len(lines) == 0 { // at a budget, for example
		lines = append(lines, fmt.Sprintf("It is %s: %s", n.Status, n.Reason))
	}
	return strings.Join(lines, "\n")
}

// value is a shown value as a customer reads it.
func value(j agent.JSON) string {
	var money agent.Money
	if json.Unmarshal(j, &money) == nil && money.Currency != "" {
		return money.String()
	}
	return strings.Trim(j.String(), `"`)
}

// parcelLeft sets the one field that is the backend's. It is the same amend
// however often the warehouse says so, since its id is the same.
func parcelLeft(ctx context.Context, runs *starter.Starter, ticket string) error {
	_, err := runs.Amend(ctx, signals.Address(tenant, "orders", ticket), signals.Amend{ID: "shipped",
		Principal: agent.Principal{Subject: "warehouse"}, Fields: agent.JSON(`{"shipped":true}`)})
	return err
}
