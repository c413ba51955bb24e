use super::*;
use taktwerk_model::HostProfile;

const START: Instant = Instant::from_nanos(1_000_000_000);

/// Threads with given pieces of work, done one after the other.
struct Bench {
    machine: Machine,
    queue: EventQueue<Event>,
    /// Remaining pieces by thread, in microseconds.
    plans: Vec<(ThreadId, Vec<u64>)>,
    /// Completed pieces with their time, in microseconds since the start.
    done: Vec<(u32, u64)>,
    /// Additional time of work on a processor that has slept.
    cold: Cold,
}

fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

impl Bench {
    fn new(cores: u32, change: impl FnOnce(&mut HostProfile)) -> Self {
        let mut profile = HostProfile::free(cores);
        change(&mut profile);
        let costs = Arc::new(Costs::new(&profile).unwrap());
        let machine = Machine::new(MachineId(0), costs, SeededEntropy::new(1));
        Self {
            machine,
            queue: EventQueue::new(START),
            plans: Vec::new(),
            done: Vec::new(),
            cold: Cold::default(),
        }
    }

    /// Starts a thread now.
    fn begin(&mut self, plan: &[u64]) -> ThreadId {
        let number = u32::try_from(self.plans.len()).unwrap();
        let thread = self.machine.spawn(Owner::Clients(number));
        let mut left = plan.to_vec();
        let first = left.remove(0);
        self.plans.push((thread, left));
        self.machine.start(thread, micros(first), self.cold, &mut self.queue);
        thread
    }

    fn run_until(&mut self, at: u64) {
        let until = START + micros(at);
        while let Some(event) = self.queue.pop_until(until) {
            let (core, number) = match event {
                Event::Core { core, number, .. } => (core, number),
                Event::Competitor { number, .. } => {
                    self.machine.wake_competitor(number, &mut self.queue);
                    continue;
                }
                other => panic!("{other:?}"),
            };
            match self.machine.event(core, number, &mut self.queue) {
                Some((Owner::Clients(owner), thread)) => {
                    let at = self.queue.now().since(START).as_micros();
                    self.done.push((owner, u64::try_from(at).unwrap()));
                    let left = &mut self.plans[owner as usize].1;
                    if left.is_empty() {
                        self.machine.sleep(thread, &mut self.queue);
                    } else {
                        let next = left.remove(0);
                        self.machine.resume(thread, micros(next), &mut self.queue);
                    }
                }
                Some((Owner::Competitor(number), _)) => self.machine.compete_again(number, &mut self.queue),
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        }
        self.queue.advance(until);
    }
}

#[test]
fn threads_use_different_processors() {
    let mut bench = Bench::new(2, |_| {});
    bench.begin(&[100, 50]);
    bench.begin(&[120]);
    bench.begin(&[10]);
    bench.run_until(1_000);
    // The third thread waits for the first free processor.
    assert_eq!(bench.done, [(0, 100), (1, 120), (2, 130), (0, 150)]);
    assert_eq!(bench.machine.used(), micros(280));
}

#[test]
fn busy_threads_share_a_processor_by_time_slices() {
    let mut bench = Bench::new(1, |_| {});
    bench.begin(&[9_000]);
    bench.begin(&[9_000]);
    bench.run_until(30_000);
    assert_eq!(bench.done, [(0, 15_000), (1, 18_000)]);
}

#[test]
fn waking_threads_preempt_long_jobs() {
    let mut bench = Bench::new(1, |_| {});
    bench.begin(&[50_000]);
    bench.run_until(20_500);
    bench.begin(&[30]);
    bench.run_until(60_000);
    assert_eq!(bench.done, [(1, 20_530), (0, 50_030)]);
}

#[test]
fn waking_a_sleeping_processor_takes_time() {
    let mut bench = Bench::new(1, |profile| profile.scheduler.wake = Cost::Fixed(40_000.0));
    bench.begin(&[100]);
    bench.run_until(200);
    assert_eq!(bench.done, [(0, 140)]);
    assert_eq!(
        bench.machine.used(),
        micros(100),
        "waiting for the processor to wake up does not count as work"
    );
}

#[test]
fn sleeping_processors_wake_later_and_work_slower() {
    let mut bench = Bench::new(1, |profile| {
        profile.scheduler.wake = Cost::Fixed(10_000.0);
        profile.scheduler.wake_asleep = Some(Cost::Fixed(50_000.0));
        profile.scheduler.asleep = 1e6;
    });
    bench.cold = Cold { asleep: micros(20), deep: micros(20) };
    bench.begin(&[100]);
    bench.run_until(270);
    assert_eq!(bench.done, [(0, 170)], "the processor was idle for a second");
    assert_eq!(bench.machine.used(), micros(120));
    // It was idle for half of the time until it sleeps, so it is half as cold.
    bench.run_until(670);
    bench.begin(&[100]);
    bench.run_until(1_000);
    assert_eq!(bench.done[1], (1, 810), "{:?}", bench.done);
}

#[test]
fn a_long_sleep_costs_more() {
    let mut bench = Bench::new(1, |profile| {
        (profile.scheduler.asleep, profile.scheduler.deep) = (1e6, 1e8);
    });
    bench.cold = Cold { asleep: micros(20), deep: micros(100) };
    bench.begin(&[100]);
    bench.run_until(10_200);
    bench.begin(&[100]);
    bench.run_until(20_000);
    // 1 s: maximally cold. 10 ms: halfway between asleep and deep on a logarithmic scale.
    assert_eq!(bench.done, [(0, 200), (1, 10_360)]);
}

#[test]
fn competitors_use_their_share() {
    let mut bench = Bench::new(1, |_| {});
    bench.machine.compete(Competitor { share: 0.3, burst: micros(2_000) }, &mut bench.queue);
    bench.run_until(10_000_000);
    let share = bench.machine.used().as_secs_f64() / 10.0;
    assert!((0.27..0.33).contains(&share), "{share}");
    // A program that never sleeps gets half of the processor if there is another thread.
    let mut bench = Bench::new(1, |_| {});
    bench.machine.compete(Competitor { share: 1.0, burst: micros(2_000) }, &mut bench.queue);
    bench.run_until(50_000);
    bench.begin(&[500_000]);
    bench.run_until(2_000_000);
    let (_, at) = bench.done[0];
    assert!((1_000_000..1_060_000).contains(&at), "{at}");
}

#[test]
fn killed_threads_release_their_processor() {
    let mut bench = Bench::new(1, |_| {});
    let first = bench.begin(&[10_000]);
    let second = bench.begin(&[100]);
    bench.begin(&[200]);
    bench.machine.kill(second, &mut bench.queue);
    bench.run_until(1_000);
    bench.machine.kill(first, &mut bench.queue);
    bench.run_until(20_000);
    assert_eq!(bench.done, [(2, 1_200)]);
    // What they have used stays, also if other threads get their places.
    let used = |bench: &Bench, number: u32| bench.machine.used_by(|owner| owner == Owner::Clients(number));
    assert_eq!([0, 1, 2].map(|number| used(&bench, number)), [1_000, 0, 200].map(micros));
    bench.begin(&[300]);
    bench.run_until(30_000);
    assert_eq!([0, 3].map(|number| used(&bench, number)), [1_000, 300].map(micros));
}
