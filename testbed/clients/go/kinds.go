package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// A kind is a Go type with the Avro schema that an application registers for it.
type kind struct {
	goType     reflect.Type
	definition any
	fill       func(reflect.Value)
	show       func(reflect.Value) any
	// Whether the tag `json:",string"` may stand at a field of this kind.
	quotable bool
}

type maker struct {
	random *rand.Rand
	avro   bool
	names  int
}

type definition = map[string]any

func logical(kind string, name string) definition {
	return definition{"type": kind, "logicalType": name}
}

// Shown as text, so that no reader of JSON rounds it.
func float(value float64) any {
	return strconv.FormatFloat(value, 'g', -1, 64)
}

func nanoseconds(at time.Time) any {
	total := new(big.Int).Mul(big.NewInt(at.Unix()), big.NewInt(1_000_000_000))
	return total.Add(total, big.NewInt(int64(at.Nanosecond())))
}

func (m *maker) text() string {
	letters := []rune("aZ09 _-\"\\/<>&'\u00e4\u0000\u001f\n\t\u2028\u20ac\U0001f600")
	var made strings.Builder
	for range m.random.Intn(8) {
		made.WriteRune(letters[m.random.Intn(len(letters))])
	}
	return made.String()
}

func (m *maker) whole() int64 {
	edges := []int64{0, 1, -1, 127, 128, 1 << 31, 1<<53 + 1, math.MaxInt64, math.MinInt64}
	if m.random.Intn(2) == 0 {
		return edges[m.random.Intn(len(edges))]
	}
	return int64(m.random.Uint64()) >> m.random.Intn(63)
}

func (m *maker) double() float64 {
	edges := []float64{0, math.Copysign(0, -1), 1, 0.1, 1e21, 1e-7, 5e-324, math.MaxFloat64, 1 << 53}
	switch m.random.Intn(4) {
	case 0:
		return edges[m.random.Intn(len(edges))]
	case 1:
		return float64(m.random.Intn(1000))
	}
	return m.random.NormFloat64() * math.Pow10(m.random.Intn(40)-20)
}

// Integers of each width: under int and long, for Go has no wider match.
func (m *maker) integer() kind {
	types := []any{int8(0), int16(0), int32(0), int64(0), int(0)}
	if !m.avro {
		types = append(types, uint8(0), uint16(0), uint32(0), uint64(0))
	}
	goType := reflect.TypeOf(types[m.random.Intn(len(types))])
	avro := "long"
	if goType.Bits() < 32 || goType.Kind() == reflect.Int32 {
		avro = "int"
	}
	if goType.Kind() == reflect.Int && m.avro {
		avro = "long"
	}
	return kind{
		goType, avro,
		func(v reflect.Value) {
			if v.CanInt() {
				v.SetInt(m.whole() >> (64 - goType.Bits()))
			} else {
				v.SetUint(uint64(m.whole()) >> (64 - goType.Bits()))
			}
		},
		func(v reflect.Value) any { return v.Interface() }, true,
	}
}

func (m *maker) simple() kind {
	show := func(v reflect.Value) any { return v.Interface() }
	switch m.random.Intn(12) {
	case 0:
		return kind{reflect.TypeOf(false), "boolean",
			func(v reflect.Value) { v.SetBool(m.random.Intn(2) == 0) }, show, true}
	case 1, 2, 3:
		return m.integer()
	case 4:
		return kind{reflect.TypeOf(float32(0)), "float",
			func(v reflect.Value) { v.SetFloat(float64(float32(m.random.NormFloat64()))) },
			func(v reflect.Value) any { return float(v.Float()) }, true}
	case 5:
		return kind{reflect.TypeOf(float64(0)), "double",
			func(v reflect.Value) { v.SetFloat(m.double()) },
			func(v reflect.Value) any { return float(v.Float()) }, true}
	case 6:
		return kind{reflect.TypeOf([]byte{}), "bytes",
			func(v reflect.Value) {
				raw := make([]byte, m.random.Intn(6))
				m.random.Read(raw)
				v.SetBytes(raw)
			}, func(v reflect.Value) any { return append([]byte{}, v.Bytes()...) }, false}
	case 7:
		return m.time()
	case 8:
		m.names++
		symbols := []string{"RED", "GREEN", "BLUE"}
		return kind{reflect.TypeOf(""),
			definition{"type": "enum", "name": fmt.Sprintf("E%d", m.names), "symbols": symbols},
			func(v reflect.Value) { v.SetString(symbols[m.random.Intn(3)]) }, show, false}
	case 9:
		return m.decimal()
	}
	return kind{reflect.TypeOf(""), "string",
		func(v reflect.Value) { v.SetString(m.text()) }, show, false}
}

// encoding/json writes times as RFC 3339, with the zone and as many digits as there are.
func (m *maker) time() kind {
	unit, name := time.Millisecond, "timestamp-millis"
	if m.random.Intn(2) == 0 {
		unit, name = time.Microsecond, "timestamp-micros"
	}
	written := unit
	if !m.avro {
		written = []time.Duration{time.Second, unit, time.Nanosecond}[m.random.Intn(3)]
	}
	return kind{reflect.TypeOf(time.Time{}), logical("long", name),
		func(v reflect.Value) {
			zone := time.FixedZone("", (m.random.Intn(49)-24)*1800)
			seconds := m.random.Int63n(253_402_300_800+62_000_000_000) - 62_000_000_000
			at := time.Unix(seconds, m.random.Int63n(1_000_000_000)).Truncate(written)
			v.Set(reflect.ValueOf(at.In(zone)))
		},
		func(v reflect.Value) any { return nanoseconds(v.Interface().(time.Time)) }, false}
}

// The types that stand for decimals: big.Rat in Avro, json.Number and big.Int in JSON.
func (m *maker) decimal() kind {
	if m.avro {
		scale := m.random.Intn(5)
		one := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
		schema := logical("bytes", "decimal")
		schema["precision"], schema["scale"] = 20, scale
		return kind{reflect.TypeOf(&big.Rat{}), schema,
			func(v reflect.Value) {
				v.Set(reflect.ValueOf(new(big.Rat).SetFrac(big.NewInt(m.whole()), one)))
			},
			func(v reflect.Value) any { return v.Interface().(*big.Rat).FloatString(scale) }, false}
	}
	if m.random.Intn(2) == 0 {
		return kind{reflect.TypeOf(json.Number("")), "double",
			func(v reflect.Value) { v.SetString(strconv.FormatFloat(m.double(), 'g', -1, 64)) },
			func(v reflect.Value) any { return v.String() }, true}
	}
	schema := logical("bytes", "decimal")
	schema["precision"], schema["scale"] = 38, 0
	return kind{reflect.TypeOf(&big.Int{}), schema,
		func(v reflect.Value) { v.Set(reflect.ValueOf(big.NewInt(m.whole()))) },
		func(v reflect.Value) any { return v.Interface().(*big.Int).String() }, false}
}

func (m *maker) any(depth int) kind {
	if depth == 0 {
		return m.simple()
	}
	switch m.random.Intn(10) {
	case 0:
		return m.record(depth - 1)
	case 1:
		return m.list(m.any(depth - 1))
	case 2:
		return m.mapping(m.any(depth - 1))
	case 3:
		return m.optional(m.any(depth - 1))
	}
	return m.simple()
}

func (m *maker) optional(of kind) kind {
	union, isUnion := of.definition.([]any)
	if isUnion || of.goType.Kind() == reflect.Pointer {
		return of
	}
	if m.avro && (of.goType.Kind() == reflect.Map || of.goType.Kind() == reflect.Slice) {
		return of
	}
	union = []any{"null", of.definition}
	return kind{reflect.PointerTo(of.goType), union,
		func(v reflect.Value) {
			if m.random.Intn(3) > 0 {
				v.Set(reflect.New(of.goType))
				of.fill(v.Elem())
			}
		},
		func(v reflect.Value) any {
			if v.IsNil() {
				return nil
			}
			return of.show(v.Elem())
		}, of.quotable}
}

func (m *maker) list(of kind) kind {
	goType := reflect.SliceOf(of.goType)
	schema := definition{"type": "array", "items": of.definition}
	if goType.Elem().Kind() == reflect.Uint8 {
		return of // encoding/json takes it for bytes
	}
	return kind{goType, schema,
		func(v reflect.Value) {
			count := m.random.Intn(4)
			v.Set(reflect.MakeSlice(goType, count, count))
			for i := range count {
				of.fill(v.Index(i))
			}
		},
		func(v reflect.Value) any {
			shown := []any{}
			for i := range v.Len() {
				shown = append(shown, of.show(v.Index(i)))
			}
			return shown
		}, false}
}

// Keys that are numbers are text in JSON.
func (m *maker) mapping(of kind) kind {
	key := reflect.TypeOf("")
	if !m.avro && m.random.Intn(2) == 0 {
		key = reflect.TypeOf(int32(0))
	}
	goType := reflect.MapOf(key, of.goType)
	return kind{goType, definition{"type": "map", "values": of.definition},
		func(v reflect.Value) {
			v.Set(reflect.MakeMap(goType))
			for range m.random.Intn(4) {
				name, value := reflect.New(key).Elem(), reflect.New(of.goType).Elem()
				if key.Kind() == reflect.String {
					name.SetString(m.text())
				} else {
					name.SetInt(int64(m.random.Int31()))
				}
				of.fill(value)
				v.SetMapIndex(name, value)
			}
		},
		func(v reflect.Value) any {
			shown := map[string]any{}
			for _, name := range v.MapKeys() {
				shown[fmt.Sprint(name.Interface())] = of.show(v.MapIndex(name))
			}
			return shown
		}, false}
}

// A struct: its fields have a tag with the schema's name, or the schema's name in Go's spelling.
func (m *maker) record(depth int) kind {
	m.names++
	name := fmt.Sprintf("R%d", m.names)
	count := 1 + m.random.Intn(6)
	var kinds []kind
	var fields []reflect.StructField
	var described, names []any
	for i := range count {
		of := m.any(depth)
		spelled := fmt.Sprintf("field%d", i)
		field := reflect.StructField{Name: fmt.Sprintf("Field%d", i), Type: of.goType}
		options := ""
		if of.quotable && m.random.Intn(3) == 0 {
			options = ",string"
		} else if of.goType.Kind() == reflect.Pointer && m.random.Intn(2) == 0 {
			options = ",omitempty"
		}
		switch {
		case m.avro:
			field.Tag = reflect.StructTag(fmt.Sprintf(`avro:"%s"`, spelled))
		case m.random.Intn(2) == 0:
			spelled = strings.ToLower(fmt.Sprintf("ID%d", i))
			field.Name = strings.ToUpper(spelled)
			field.Tag = reflect.StructTag(fmt.Sprintf(`json:"%s"`, options))
		default:
			field.Tag = reflect.StructTag(fmt.Sprintf(`json:"%s%s"`, spelled, options))
		}
		kinds, fields = append(kinds, of), append(fields, field)
		described = append(described, definition{"name": spelled, "type": of.definition})
		names = append(names, spelled)
	}
	goType := reflect.StructOf(fields)
	return kind{goType, definition{"type": "record", "name": name, "fields": described},
		func(v reflect.Value) {
			for i, of := range kinds {
				of.fill(v.Field(i))
			}
		},
		func(v reflect.Value) any {
			shown := map[string]any{}
			for i, of := range kinds {
				shown[names[i].(string)] = of.show(v.Field(i))
			}
			return shown
		}, false}
}
