#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| hermes_fuzz::command_policy(input));
