// Package main is a stand-in device plugin: it advertises devices, and mounts those that a container is given.
//
// Usage: deviceplugin RESOURCE COUNT FOLDER. Device i is FOLDER/i on the host and /dev/nvidia<i> in the container.
package main

import (
	"context"
	"log"
	"net"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

type plugin struct {
	api.UnimplementedDevicePluginServer
	count  int
	folder string
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	var devices []*api.Device
	for i := 0; i < p.count; i++ {
		devices = append(devices, &api.Device{ID: strconv.Itoa(i), Health: api.Healthy})
	}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// The first free ones, so that a test knows which.
func (p *plugin) GetPreferredAllocation(_ context.Context, r *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	answer := &api.PreferredAllocationResponse{}
	for _, request := range r.ContainerRequests {
		ids := append([]string{}, request.AvailableDeviceIDs...)
		sort.Strings(ids)
		answer.ContainerResponses = append(answer.ContainerResponses,
			&api.ContainerPreferredAllocationResponse{DeviceIDs: ids[:request.AllocationSize]})
	}
	return answer, nil
}

func (p *plugin) Allocate(_ context.Context, r *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, request := range r.ContainerRequests {
		given := &api.ContainerAllocateResponse{}
		for _, id := range request.DevicesIds {
			given.Mounts = append(given.Mounts, &api.Mount{
				HostPath: filepath.Join(p.folder, id), ContainerPath: "/dev/nvidia" + id, ReadOnly: true,
			})
		}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return answer, nil
}

func (p *plugin) PreStartContainer(context.Context, *api.PreStartContainerRequest) (*api.PreStartContainerResponse, error) {
	return &api.PreStartContainerResponse{}, nil
}

func main() {
	count, err := strconv.Atoi(os.Args[2])
	must(err)
	p := &plugin{count: count, folder: os.Args[3]}
	must(os.MkdirAll(p.folder, 0o755))
	for i := 0; i < count; i++ {
		path := filepath.Join(p.folder, strconv.Itoa(i))
		_ = os.Remove(path)
		// Slurm takes devices only: this is /dev/null.
		must(syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|3))
	}
	endpoint := "standin.sock"
	socket := filepath.Join(api.DevicePluginPath, endpoint)
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	must(err)
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, p)
	go func() { must(server.Serve(listener)) }()
	kubelet, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	_, err = api.NewRegistrationClient(kubelet).Register(context.Background(), &api.RegisterRequest{
		Version: api.Version, Endpoint: endpoint, ResourceName: os.Args[1],
		Options: &api.DevicePluginOptions{GetPreferredAllocationAvailable: true},
	})
	must(err)
	log.Printf("%d devices %s", count, os.Args[1])
	select {}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
