// Writes go.jsonl: how Pulsar's Go client writes structs under a JSON schema, whose text is the user's own.
//
//	go mod tidy && go run . > ../go.jsonl
package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

type inner struct{ Zip string }

// No tags: the names of the fields are what is written.
type order struct {
	ID      int64
	Name    string
	Raw     []byte
	At      time.Time
	Amount  float64
	Counts  map[int]string
	Missing *int
	Inner   inner
	Price   *big.Float
	Quoted  int64 `json:",string"`
	Any     any
}

const schema = `{"type":"record","name":"Order","fields":[
{"name":"id","type":"long"},{"name":"name","type":"string"},{"name":"raw","type":"bytes"},
{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"amount","type":"double"},
{"name":"counts","type":{"type":"map","values":"string"}},{"name":"missing","type":["null","int"]},
{"name":"inner","type":{"type":"record","name":"Inner","fields":[{"name":"zip","type":"string"}]}},
{"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}},
{"name":"quoted","type":"long"},{"name":"any","type":{"type":"record","name":"Any","fields":[]}}]}`

func main() {
	value := order{
		ID: 1, Name: "<ä>", Raw: []byte("hi"), At: time.Date(2023, 11, 14, 23, 13, 20, 123456000, time.FixedZone("", 3600)),
		Amount: 1e21, Counts: map[int]string{1: "a"}, Inner: inner{"12345"}, Price: big.NewFloat(12.25), Quoted: 7,
		Any: []any{1, "x"},
	}
	client := pulsar.NewJSONSchema(schema, nil)
	payload, err := client.Encode(value)
	if err != nil {
		panic(err)
	}
	line, _ := json.Marshal(map[string]string{
		"name": "go order", "type": "JSON", "schema": client.GetSchemaInfo().Schema, "payload": string(payload),
	})
	fmt.Println(string(line))
}
