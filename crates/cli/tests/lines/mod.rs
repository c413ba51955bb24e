//! The output of a program, line by line, from standard output and standard error.

use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};

/// The lines of a program that was started with pipes.
pub(crate) fn of(child: &mut Child) -> Receiver<String> {
    let (tell, lines) = channel();
    let outputs: [Box<dyn Read + Send>; 2] =
        [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
    for output in outputs {
        let tell = tell.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Reads on without a receiver, so that the program does not block.
                let _ = tell.send(line);
            }
        });
    }
    lines
}
