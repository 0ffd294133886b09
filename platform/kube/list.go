package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Place is a namespace of a space, or in it the staging of a build.
type Place struct {
	Namespace string
	Build     string // of a staging
	Deleting  bool   // the cluster was told to remove it, and has not finished
}

// fromCache lets the API server answer from memory. What it says may be a moment old.
func (c *Cluster) fromCache(role string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: c.ours(role), ResourceVersion: "0"}
}

// Spaces lists the namespaces of spaces that the cluster has.
func (c *Cluster) Spaces(ctx context.Context) ([]Place, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := c.core.Namespaces().List(ctx, c.fromCache(roleSpace))
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	var all []Place
	for _, n := range found.Items {
		all = append(all, Place{Namespace: n.Name, Deleting: n.DeletionTimestamp != nil})
	}
	return all, nil
}

// Stagings lists the stagings that the cluster has, under way or ended.
func (c *Cluster) Stagings(ctx context.Context) ([]Place, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := c.core.Pods(metav1.NamespaceAll).List(ctx, c.fromCache(roleStaging))
	if err != nil {
		return nil, fmt.Errorf("list stagings: %w", err)
	}
	var all []Place
	for _, p := range found.Items {
		all = append(all, Place{Namespace: p.Namespace, Build: p.Labels[LabelBuild], Deleting: p.DeletionTimestamp != nil})
	}
	return all, nil
}
