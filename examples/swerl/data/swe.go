package data

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/turnpack/turnpack/reward/swebench"
	"github.com/turnpack/turnpack/rollout"
)

// task is a line of train.jsonl as read by the loaders of swe-rl.
type task struct {
	Text     string       `json:"text"`
	Metadata taskMetadata `json:"metadata"`
}

type taskMetadata struct {
	Instance   json.RawMessage `json:"instance"` // the row unchanged
	DataSource string          `json:"data_source"`
}

// swe converts rows of SWE-Gym and SWE-bench to tasks: train.jsonl, verified_eval.jsonl
// with those of SWE-bench, instance_ids.txt and docker_images.txt. Rows of train.jsonl
// are also accepted as input.
func swe(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("swerl data swe", flag.ContinueOnError)
	source := fs.String("data-source", "", "`name` of the data set (default: SWE-bench where rows have its columns, else SWE-Gym)")
	registry := fs.String("registry", "", "registry and owner of images in place of the data set's, such as a mirror's")
	name := fs.String("train", "train.jsonl", "`name` of the file of tasks")
	most := fs.Int("max-samples", 0, "most rows; 0 = all")
	force := fs.Bool("force", false, "replace files that are there")
	in, dir, err := parse(fs, args, out)
	if err != nil {
		return err
	}
	made := files{*name: nil, "verified_eval.jsonl": nil, "instance_ids.txt": nil, "docker_images.txt": nil}
	seen, images, evaluated := map[string]bool{}, map[string]bool{}, 0
	err = eachRow(ctx, in, func(where rollout.Where, row json.RawMessage) error {
		if *most > 0 && len(seen) == *most {
			return nil
		}
		t, instance, err := taskOf(where, row, *source)
		if err != nil {
			return err
		}
		if seen[instance.InstanceID] {
			return rollout.Errorf(rollout.KindInput, where, "instance %s is there twice", instance.InstanceID).WithFix("take one of them out")
		}
		seen[instance.InstanceID] = true
		if err := made.add(*name, t); err != nil {
			return err
		}
		if isBench(t.Metadata.DataSource) {
			evaluated++
			if err := made.add("verified_eval.jsonl", t); err != nil {
				return err
			}
		}
		made["instance_ids.txt"] = append(made["instance_ids.txt"], instance.InstanceID+"\n"...)
		if image := instance.ImageName(t.Metadata.DataSource, *registry); !images[image] {
			images[image] = true
			made["docker_images.txt"] = append(made["docker_images.txt"], image+"\n"...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(seen) == 0 {
		return rollout.Errorf(rollout.KindInput, rollout.Where{File: strings.Join(in, ",")}, "no row is there")
	}
	if err := made.write(dir, *force); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d tasks, %d images, %d of SWE-bench\n", len(seen), len(images), evaluated)
	if evaluated > 0 {
		fmt.Fprintf(out, "%s holds the tasks of SWE-bench too: do not train on those you evaluate with\n", *name)
	}
	return nil
}

func isBench(source string) bool {
	return strings.Contains(strings.ReplaceAll(strings.ToLower(source), "_", "-"), "swe-bench")
}

// taskOf returns the task of a row and its instance. Rows without test lists are
// accepted, since grading by an eval script needs none.
func taskOf(where rollout.Where, row json.RawMessage, source string) (task, swebench.Instance, error) {
	var t task
	var nested struct {
		Metadata *taskMetadata `json:"metadata"`
	}
	if err := json.Unmarshal(row, &nested); err != nil {
		return t, swebench.Instance{}, rollout.Errorf(rollout.KindFormat, where, "a row is an object: %w", err)
	}
	t.Metadata.Instance, t.Metadata.DataSource = row, source
	if m := nested.Metadata; m != nil && m.Instance != nil { // the row is already a task
		t.Metadata.Instance = m.Instance
		if source == "" {
			t.Metadata.DataSource = m.DataSource
		}
	}
	var columns struct {
		ID         string  `json:"instance_id"`
		Problem    string  `json:"problem_statement"`
		Image      string  `json:"image"`
		ImageName  string  `json:"image_name"`
		Docker     string  `json:"docker_image"`
		Setup      *string `json:"environment_setup_commit"` // SWE-bench only
		Difficulty *string `json:"difficulty"`               // its Verified subset only
	}
	if err := json.Unmarshal(t.Metadata.Instance, &columns); err != nil {
		return t, swebench.Instance{}, rollout.Errorf(rollout.KindFormat, where, "no instance: %w", err)
	}
	instance := swebench.Instance{InstanceID: columns.ID, Image: cmp.Or(columns.Image, columns.ImageName, columns.Docker)}
	t.Text = columns.Problem
	switch {
	case columns.ID == "":
		where.Field = "instance_id"
		return t, instance, rollout.Errorf(rollout.KindInput, where, "the row names no instance").WithFix("name rows of SWE-Gym or SWE-bench")
	case t.Text == "":
		where.Field = "problem_statement"
		return t, instance, rollout.Errorf(rollout.KindInput, where, "instance %s has no text", columns.ID)
	case t.Metadata.DataSource != "":
	case columns.Difficulty != nil && columns.Setup != nil:
		t.Metadata.DataSource = "SWE-bench_Verified"
	case columns.Setup != nil:
		t.Metadata.DataSource = "SWE-bench"
	default:
		t.Metadata.DataSource = "SWE-Gym"
	}
	return t, instance, nil
}
