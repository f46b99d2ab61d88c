//! Makes the BPF program that the binary carries.

fn main() -> std::process::ExitCode {
    bpf_toolchain::build("limiter-xdp")
}
