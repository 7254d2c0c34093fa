package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"io"

	"github.com/go-faster/errors"
)

// spec is what the first process of a sandbox is told, over the control socket:
// nothing of it is in its arguments or its environment, where others could see
// it.
type spec struct {
	Level Level `json:"level"`
	// UID and GID are what the command runs as, in the sandbox's own numbers at
	// the level full.
	UID int `json:"uid"`
	GID int `json:"gid"`
	// DropGroups says that the process may give up its other groups, and has to.
	DropGroups bool     `json:"drop_groups"`
	Args       []string `json:"args"`
	Env        []string `json:"env"`
	Dir        string   `json:"dir"`
	Limits     Limits   `json:"limits"`
	// Read are more paths of the host to be read; Hide is what must not be seen
	// even if it lies in a folder that is: the data directory.
	Read  []string `json:"read"`
	Hide  string   `json:"hide"`
	Proxy bool     `json:"proxy"`
}

// report is what the first process says at its end.
type report struct {
	// Broken says what our own machinery could not do; nothing ran then.
	Broken string `json:"broken,omitempty"`
	// NotStarted says why the program could not be started.
	NotStarted string `json:"not_started,omitempty"`
	// Status is the wait status of the command.
	Status uint32 `json:"status"`
}

// maxMessage bounds a message of either side, in bytes. Linux takes no longer
// arguments and environments anyway.
const maxMessage = 8 << 20

// send writes a message: its length in four bytes, then JSON.
func send(w io.Writer, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

func receiveMessage(r io.Reader, message any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > maxMessage {
		return errors.Errorf("a message of %d bytes", length)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return json.Unmarshal(body, message)
}
