//! The commands and their answers, on the terminal and over the socket.

mod decisions;
mod help;
mod http;
mod keys;
mod output;
mod ranking;
mod shapes;
