// Random Go types and values, written by Pulsar's Go client as an application writes them.
//
//	clients-go SEED SCHEMAS MESSAGES                        prints what the client encodes
//	clients-go SEED SCHEMAS MESSAGES SERVICE_URL PREFIX     and sends it, to a topic a schema
//
// Prints a JSON line a message: type and definition of its schema, the payload, and the value as
// the client itself reads the payload. How values are printed: show.go.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"reflect"
	"strconv"

	"github.com/apache/pulsar-client-go/pulsar"
	pulsarlog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

type line struct {
	Schema     int    `json:"schema"`
	Type       string `json:"type"`
	Definition string `json:"definition"`
	Payload    []byte `json:"payload"`
	Value      any    `json:"value"`
	Topic      string `json:"topic,omitempty"`
}

func number(text string) int {
	parsed, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return parsed
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	seed, schemas, messages := number(os.Args[1]), number(os.Args[2]), number(os.Args[3])
	var client pulsar.Client
	if len(os.Args) > 4 {
		quiet := logrus.New()
		quiet.SetLevel(logrus.ErrorLevel)
		var err error
		client, err = pulsar.NewClient(pulsar.ClientOptions{
			URL: os.Args[4], Logger: pulsarlog.NewLoggerWithLogrus(quiet),
		})
		check(err)
		defer client.Close()
	}
	out := json.NewEncoder(os.Stdout)
	for n := 0; n < schemas; n++ {
		random := rand.New(rand.NewSource(int64(seed)*1_000_003 + int64(n)))
		kind := []string{"JSON", "AVRO"}[n%2]
		maker := &maker{random: random, avro: kind == "AVRO"}
		record := maker.record(3)
		definition, err := json.Marshal(record.definition)
		check(err)
		var schema pulsar.Schema
		if kind == "JSON" {
			schema = pulsar.NewJSONSchema(string(definition), nil)
		} else {
			schema = pulsar.NewAvroSchema(string(definition), nil)
		}
		var producer pulsar.Producer
		topic := ""
		if client != nil {
			topic = fmt.Sprintf("%s%d", os.Args[5], n)
			producer, err = client.CreateProducer(
				pulsar.ProducerOptions{Topic: topic, Schema: schema},
			)
			check(err)
		}
		for m := 0; m < messages; m++ {
			value := reflect.New(record.goType)
			record.fill(value.Elem())
			payload, err := schema.Encode(value.Interface())
			check(err)
			again := reflect.New(record.goType)
			check(schema.Decode(payload, again.Interface()))
			check(out.Encode(line{
				n, kind, schema.GetSchemaInfo().Schema, payload, record.show(again.Elem()), topic,
			}))
			if producer != nil {
				_, err = producer.Send(
					context.Background(), &pulsar.ProducerMessage{Value: value.Interface()},
				)
				check(err)
			}
		}
		if producer != nil {
			producer.Close()
		}
	}
}
