//! Limits of the scripts that metamcp runs for clients.
//!
//! An earlier product of this kind ran scripts of 50 KiB for 120 s, with pauses of 30 s and outputs
//! of 10 MiB. metamcp keeps these values, as the defaults and as the most that an operator may set:
//! a script for that product has the same room here, and no configuration makes scripts unbounded.
//! Another earlier product had the tool `execute_code`, whose bounds metamcp keeps, too.

use std::time::Duration;

/// The default and the largest `execute.code_bytes_max`, in bytes: that of the earlier product.
pub const EXECUTE_CODE_BYTES_MAX: usize = 50 << 10;

/// The default and the longest `execute.timeout`: that of the earlier product.
pub const EXECUTE_TIMEOUT: Duration = Duration::from_secs(120);

/// The shortest `execute.timeout`: about the time in which a server starts.
pub const EXECUTE_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// The longest timeout that a caller may set for one script. Source: `timeout_ms` of `execute_code`
/// in the earlier product with that tool.
pub const EXECUTE_TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// The default and the longest `execute.sleep_max`: that of the earlier product.
pub const EXECUTE_SLEEP_MAX: Duration = Duration::from_secs(30);

/// The default and the largest `execute.output_bytes_max`, in bytes: that of the earlier product.
pub const EXECUTE_OUTPUT_BYTES_MAX: usize = 10 << 20;

/// The default of `execute.max_tool_calls`. Source: the default of the earlier product with
/// `execute_code`.
pub const EXECUTE_CALLS: usize = 64;

/// The largest `execute.max_tool_calls`, and the largest number of tool calls that a caller may
/// allow one script. Source: `max_tool_calls` of `execute_code` in the earlier product with that
/// tool.
pub const EXECUTE_CALLS_MAX: usize = 1000;

/// The default and the largest `execute.max_parallel`: less than the default of `pool.size`, so that
/// one script leaves connections for other clients.
pub const EXECUTE_PARALLEL_MAX: usize = 16;

/// The default and the largest `execute.memory_bytes_max`, in bytes: four times the largest message,
/// so that a script can hold one as text and as values.
pub const EXECUTE_MEMORY_BYTES_MAX: usize = 4 * super::MESSAGE_BYTES_MAX;

/// The smallest `execute.memory_bytes_max`, in bytes: an eighth of the default. With less, a script
/// could hold only small results.
pub const EXECUTE_MEMORY_BYTES_MIN: usize = EXECUTE_MEMORY_BYTES_MAX / 8;
