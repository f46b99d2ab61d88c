//! Makes the BPF program that floods.

fn main() -> std::process::ExitCode {
    bpf_toolchain::build("flood")
}
