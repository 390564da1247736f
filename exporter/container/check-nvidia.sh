#!/bin/sh
# Says what is missing before Docker fails with "could not select device driver". It looks at the
# host through the first process's root; where that is out of sight it lets things go on.
set -u
host=${HOST_ROOT:-/proc/1/root}
driver=${DRIVER:-/proc/driver/nvidia/version}

if [ ! -e "$driver" ]; then
    echo "This host has no NVIDIA driver. On a host without a GPU:"
    echo "  docker compose -f docker-compose.yml -f docker-compose.no-gpu.yml up -d"
    exit 1
fi
if [ ! -d "$host/usr" ]; then
    echo "The host's files are out of sight: whether the NVIDIA Container Toolkit is there cannot be told."
    exit 0
fi
for tool in nvidia-container-runtime nvidia-container-runtime-hook nvidia-ctk; do
    for folder in usr/bin usr/local/bin usr/local/nvidia/toolkit run/current-system/sw/bin; do
        [ -e "$host/$folder/$tool" ] && exit 0
    done
done
echo "This host has an NVIDIA driver, but Docker cannot give GPUs to containers: install the NVIDIA"
echo "Container Toolkit (https://docs.nvidia.com/datacenter/cloud-native/container-toolkit), then"
echo "  nvidia-ctk runtime configure --runtime=docker && systemctl restart docker"
echo "or run the stack without Docker: ./run up"
exit 1
