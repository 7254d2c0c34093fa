package poll_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"

	"github.com/google/uuid"

	"agentrun/gen"
	"agentrun/poll"
)

// A whole program: it starts a run and prints what came of it. Ctrl-C ends the
// program, not the run.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	client, err := gen.NewClient(os.Getenv("AGENTRUN_URL"), poll.Key(os.Getenv("AGENTRUN_KEY")),
		gen.WithClient(poll.KeepStatus(http.DefaultClient)))
	if err != nil {
		log.Fatal(err)
	}
	// Never repeated: a second POST would start a second run.
	created, err := client.CreateAgent(ctx, &gen.PublicCreateAgentRequest{
		Name:       "example",
		TemplateID: uuid.MustParse(os.Getenv("AGENTRUN_TEMPLATE")),
		InputText:  gen.NewOptNilString("How long is notes.txt?"),
		Files:      []gen.PublicAgentFileInput{{Filename: "notes.txt", ContentBase64: "b25lIHR3byB0aHJlZQo="}},
	})
	if err != nil {
		log.Fatal(err)
	}
	run := created.(*gen.PublicCreateAgentResponse).AgentID
	status, err := poll.Wait(ctx, client, run, poll.Options{
		Observe: func(p poll.Progress) {
			if p.Err != nil {
				log.Printf("%v; next try in %s", p.Err, p.Next)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.LoopStatus)
	for _, message := range status.Transcript {
		fmt.Printf("%s: %s\n", message.Role, message.Text)
	}
}
